"""Git as a child process: held to its limits from its first instruction, ended when its time is up or nobody waits, and never left behind."""
