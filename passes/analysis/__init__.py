"""What passes find out about a module without changing it."""
