import os

import psycopg
import redis
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
cache = redis.Redis.from_url(os.environ["REDIS_URL"])


class Note(BaseModel):
    text: str


def database():
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


with database() as connection:
    connection.execute("CREATE TABLE IF NOT EXISTS notes (id SERIAL PRIMARY KEY, text TEXT NOT NULL)")


@app.get("/health")
def health():
    return {"status": "ok"}


@app.get("/api/notes")
def notes():
    with database() as connection:
        rows = connection.execute("SELECT text FROM notes ORDER BY id").fetchall()
    return {"notes": [text for (text,) in rows], "written": int(cache.get("written") or 0)}


@app.post("/api/notes")
def add(note: Note):
    with database() as connection:
        connection.execute("INSERT INTO notes (text) VALUES (%s)", (note.text,))
    cache.incr("written")
    return notes()
