"""What is sent: lengths, words, bodies, sessions, and requests that must be refused."""
