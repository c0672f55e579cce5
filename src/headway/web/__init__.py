"""What `headway serve` and `headway annotate` run: an HTTP API, and two pages over it (the extra `serve`).

    app.py                 puts everything together
    parsing_routes.py      POST /parse and /parse/stream, GET /models and /health
    annotation_routes.py   what the annotate page asks for, over `headway.annotation`
    batching.py            sentences of many requests, parsed together
    models_pool.py         models by name, loaded once
    safety.py              who may ask, from where, and how much
    events.py              changes, told to every open page
    running.py             a server that starts at once and stops when told
    static/                the pages: plain HTML, CSS and JavaScript

FastAPI and uvicorn are imported in here only.
"""
