"""llama.cpp: any running ``llama-server``, and the embedded one in a child process of ours."""
