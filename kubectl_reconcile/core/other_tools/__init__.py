"""What objects say to Helm and Argo CD, and what of it means the same here."""
