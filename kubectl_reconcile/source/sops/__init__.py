"""Decrypting files of SOPS by one small program, which has no files, no network and no keys but those of an order, and is asked by nobody else."""
