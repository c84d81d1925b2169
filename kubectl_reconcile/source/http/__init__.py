"""The one client of HTTP for whatever desired state comes from: Git servers, repositories of charts, and what comes. See ``client``."""
