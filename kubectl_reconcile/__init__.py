"""GitOps reconciliation of Kubernetes custom resources.

Rooms, top to bottom: ``cli`` > ``engine`` > ``source | cluster | modules`` > ``core``;
``sandbox`` stands apart. Importing this package imports none of them.
"""

__version__ = "0.1.0"

IMAGE = f"ghcr.io/kubectl-reconcile/kubectl-reconcile:{__version__}"
"""The image that a release publishes: of the daemon, and of Jobs of our own."""
