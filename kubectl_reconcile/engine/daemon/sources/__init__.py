"""How sources are looked at: Git servers in lanes, folders of this machine by watches."""
