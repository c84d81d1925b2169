"""What single verbs of the command line do on a cluster, one module per verb or subject. Prints nothing."""
