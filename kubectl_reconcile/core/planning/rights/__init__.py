"""Which rights an account needs for a set, and the RBAC objects that give it these and no others. Pure."""
