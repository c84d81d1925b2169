"""What registries of OCI artifacts are asked for, and what they say: references, manifests, challenges and logins, as they are written. Pure."""
