# One image for web, edge, worker and beat; docker-compose.yml says which is which.
FROM python:3.13-slim-bookworm

# libgomp1: the built-in runner of models needs it. tzdata: time zones of members.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libgomp1 tzdata \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --system --gid 10001 slotserve \
    && useradd --system --uid 10001 --gid 10001 --create-home slotserve \
    && install -d -o slotserve -g slotserve -m 0711 /var/lib/slotserve
WORKDIR /opt/slotserve
COPY requirements.txt ./
RUN pip install --no-cache-dir --disable-pip-version-check -r requirements.txt
# Compiled here: the user below cannot write, and each start would compile all modules anew.
COPY . ./
RUN python -m compileall -q bookings gateway lanes notices slotserve wire manage.py

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 SLOTSERVE_DATA=/var/lib/slotserve
USER 10001:10001
VOLUME /var/lib/slotserve
