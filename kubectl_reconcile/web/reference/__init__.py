"""What the page's JSON API answers, described for programs and people: an OpenAPI document, generated from the routes."""
