"""What operators share that back something up by Jobs: ``slots`` says what is due, ``runs`` what happened to what was begun, ``storage`` where backups go, and ``s3`` how that is a bucket.

Pure. What the programs of these Jobs share is ``agent``.
"""
