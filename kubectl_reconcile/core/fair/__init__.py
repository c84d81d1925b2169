"""Who goes next, and who has how much, where many want the same: turns, shares, lanes and budgets of tenants. Pure."""
