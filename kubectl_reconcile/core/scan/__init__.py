"""What a security scan finds in objects, live ones or those of a plan: pure, so a preview finds what a scan after the sync would."""
