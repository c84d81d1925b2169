#!/bin/sh
# kubectl runs this file, as kubectl_complete-reconcile on PATH, to complete `kubectl reconcile …`. It is for the
# self-contained program that lies beside it.
here=$(dirname "$(readlink -f "$0")")
SHIV_ENTRY_POINT=kubectl_reconcile.cli.complete:main exec "$here/kubectl-reconcile" "$@" 2>/dev/null
