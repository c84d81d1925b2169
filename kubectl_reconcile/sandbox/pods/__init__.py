"""The nodelet: runs pods of one node as processes, as a kubelet runs them as containers.

What is to be done is decided by pure functions (what a container runs, probes, the life of a pod, its status, names and Services);
around them stand what talks to the API server and what asks the runtime.
"""
