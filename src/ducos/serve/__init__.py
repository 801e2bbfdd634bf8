"""Super-resolution over HTTP: worker processes, jobs, a stream of frames, a page, and a client.

Files enter with the options of `Options`; results leave as the files that the commands write. No
path, URL or name of a client reaches the disk unless it was listed when the server started.
"""

from typing import TYPE_CHECKING

from ducos.lazy import doors

if TYPE_CHECKING:
    from ducos.serve.app import create_app
    from ducos.serve.client import Client, ServerError
    from ducos.serve.outputs import FORMATS
    from ducos.serve.running import serve
    from ducos.serve.settings import (
        Settings,
        bytes_of,
        listed_models,
        listed_recordings,
    )
else:
    __getattr__, __dir__, __all__ = doors(__name__)
