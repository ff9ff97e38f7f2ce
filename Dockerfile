# A server of embeddings: docker build -t st_paragram . && docker run -p 8080:8080 st_paragram
# A model of your own: docker run -p 8080:8080 -v "$PWD/p-sp-es:/model:ro" st_paragram /model --name p-sp-es --host 0.0.0.0
FROM python:3.11-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu \
    && ST_PARAGRAM_REQUIRE_KERNELS=1 /venv/bin/pip install --no-cache-dir ".[serve,mining]"

FROM python:3.11-slim
COPY --from=build /venv /venv
RUN useradd --create-home --uid 10001 server
USER server
ENV PATH=/venv/bin:$PATH HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
EXPOSE 8080
HEALTHCHECK --interval=30s --start-period=60s --timeout=5s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["st-paragram", "serve"]
CMD ["p-sp-mini", "--host", "0.0.0.0"]
