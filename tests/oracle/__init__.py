"""The judge of the merge: random objects with random histories, put to the API server and to `three_way`."""
