"""Only reads: `tsb emit --to URL --verify-with 'python3 examples/exec/read_back.py FILE'`.

FILE is the database of the server, here of `tsb ingest --store 'sqlite:FILE?layout=rows'`.
"""
import json, sqlite3, sys
from urllib.parse import quote

db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
numbers = {}  # the number in FILE of each id


def word(text):
    return quote(text, safe="") or "%"


def key(name, labels):
    return " ".join([word(name), *(f"{word(label)}={word(value)}" for label, value in sorted(labels.items()))])


def answer(request, argument, lines):
    if request == "define":
        stored = {key(name, json.loads(labels)): number for number, name, labels in db.execute("select * from series")}
        numbers.update((id, stored.get(key)) for id, key in (line.split(maxsplit=1) for line in lines))
    elif request == "query":
        for id in map(str.strip, lines):
            found = "select at, value from sample where series = ? and at >= ? and at < ? order by at"
            rows = db.execute(found, (numbers[id], *map(int, argument))).fetchall()
            print("rows", number, len(rows), id, *(f"\n{at} {value!r}" for at, value in rows))
    elif request == "newest":
        found = (db.execute("select max(at) from sample where series = ?", (numbers[id],)).fetchone() for id in lines)
        return " ".join(["newest", number, str(len(lines)), *("\n" + str("-" if at is None else at) for at, in found)])
    elif request == "stats":
        return f"stats {number} 0 0 0"
    elif request != "close":
        return f"error {number} 0 this program only reads"
    return f"ok {number} 0"


print("tsb-exec 1 text name=read_back.py persistent=1", flush=True)
for line in sys.stdin:
    request, number, count, *argument = line.split()
    lines = [next(sys.stdin).rstrip("\n") for _ in range(int(count))]
    print(answer(request, argument, lines), flush=True)
