# One image for web, edge, worker and beat; docker-compose.yml says which is which.
FROM python:3.13-slim-bookworm

RUN useradd --system --uid 10001 --create-home slotserve \
    && install -d -o slotserve -g slotserve -m 0711 /var/lib/slotserve
WORKDIR /opt/slotserve
COPY requirements.txt .
RUN pip install --no-cache-dir --disable-pip-version-check -r requirements.txt
COPY . .

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 SLOTSERVE_DATA=/var/lib/slotserve
USER slotserve
VOLUME /var/lib/slotserve
