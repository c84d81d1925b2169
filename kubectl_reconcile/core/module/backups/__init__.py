"""What modules share that back something up by Jobs: ``slots`` says what is due, ``runs`` what happened to what was begun, ``storage`` where backups go."""
