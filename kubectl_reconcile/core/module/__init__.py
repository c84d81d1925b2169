"""What a domain module sees and says: the API for modules, specs, common workloads, recorded cases, rights, actions."""
