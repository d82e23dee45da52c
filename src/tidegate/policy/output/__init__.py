"""Whether an engine's answer is fit to be used: looked at while it comes, and at its end."""
