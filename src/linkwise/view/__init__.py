"""Pictures of robots: a scene made once as plain data, and two showers of it.

`scene.py` makes the scene; `page.py` writes it as one HTML file, `server.py` serves it live by
viser.
"""
