"""SQLite behind `tsb run --store 'exec:python3 examples/exec/sqlite.py?place=DIR'`."""
import os, sqlite3, sys

place = os.environ.get("TSB_PLACE")  # without one, everything is in memory
db = sqlite3.connect(os.path.join(place, "samples.db") if place else ":memory:", isolation_level=None)
db.execute("pragma journal_mode = wal")  # a commit is buffered: a flush makes it synced
db.execute("pragma synchronous = normal")
db.execute("create table if not exists samples(series, at int, value, primary key(series, at)) without rowid")
keys = {}  # the series of each id


def answer(request, argument, lines):
    if request == "define":
        keys.update(line.split(maxsplit=1) for line in lines)
    elif request == "write":
        rows = ((keys[id], int(at), float(value)) for id, at, value in map(str.split, lines))
        db.execute("begin")
        db.executemany("insert or replace into samples values(?, ?, ?)", rows)
        db.execute("commit")
    elif request == "query":
        for id in lines:
            found = "select at, value from samples where series = ? and at >= ? and at < ? order by at"
            rows = db.execute(found, (keys[id], *map(int, argument))).fetchall()
            print("rows", number, len(rows), id, *(f"\n{at} {value!r}" for at, value in rows))
    elif request == "newest":
        found = (db.execute("select max(at) from samples where series = ?", (keys[id],)).fetchone() for id in lines)
        return " ".join(["newest", number, str(len(lines)), *("\n" + str("-" if at is None else at) for at, in found)])
    elif request == "flush":
        db.execute("pragma wal_checkpoint(full)")
    elif request == "stats":
        pages = "select (select count(*) from samples), page_count * page_size from pragma_page_count, pragma_page_size"
        return "stats %s 0 %d %d" % (number, *db.execute(pages).fetchone())
    return f"ok {number} 0"


levels = "acknowledges=buffered reaches=synced persistent=1" if place else ""
print("tsb-exec 1 text name=sqlite.py", levels, flush=True)
for line in sys.stdin:
    request, number, count, *argument = line.split()
    lines = [next(sys.stdin).rstrip("\n") for _ in range(int(count))]
    print(answer(request, argument, lines), flush=True)
    if request == "close":
        db.close()
        break
