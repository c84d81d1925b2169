"""What is decided about pods: pure functions of what the API server and the runtime tell."""
