"""WhiteNoise under ASGI."""

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise, answering with whole files: Django warns of files streamed under ASGI, and none
    of ours is larger than a few hundred kilobytes."""

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """The file, compressed if the browser takes that, with WhiteNoise's headers alone."""
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file:
                content = found.file.read()
        answer = HttpResponse(content, status=int(found.status))
        del answer["content-type"]
        for name, value in found.headers:
            answer[name] = value
        return answer
