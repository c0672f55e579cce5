"""Long runs with injuries: `make soak`."""
