"""Rendering overlays and charts by one small program, which sees nothing but the files that it asks for, and is asked by nobody else."""
