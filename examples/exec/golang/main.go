// A database of one file, behind tsb run --store 'exec:PROGRAM?place=DIR'. It speaks the binary
// form of docs/formats/exec.md: samples are in memory, and in a file to which writes are appended.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
)

const (
	define, write, query, newest, flush, stats, closing = 1, 2, 3, 4, 5, 6, 7
	ok, rows, newestAnswer, statsAnswer, none           = 16, 18, 19, 20, math.MaxInt64
)

type sample struct {
	at    int64
	value uint64
}

var (
	le      = binary.LittleEndian
	samples = map[string][]sample{} // of each series, in the order of time
	keys    = map[uint32]string{}   // the series of each id
	total   int
	file    *os.File // nil: in memory only
)

// insert puts a sample in its place; a later value of the same time wins.
func insert(key string, new sample) {
	list := samples[key]
	at := sort.Search(len(list), func(i int) bool { return list[i].at >= new.at })
	if at < len(list) && list[at].at == new.at {
		list[at] = new
		return
	}
	list = append(list, sample{})
	copy(list[at+1:], list[at:])
	list[at] = new
	samples[key] = list
	total++
}

// load reads the records of the file: length of the key, key, time, value. A record that was cut
// short by the end of a process is overwritten.
func load() int64 {
	in := bufio.NewReader(file)
	end := int64(0)
	for {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return end
		}
		record := make([]byte, le.Uint32(head[:])+16)
		if _, err := io.ReadFull(in, record); err != nil {
			return end
		}
		rest := record[len(record)-16:]
		insert(string(record[:len(record)-16]), sample{int64(le.Uint64(rest)), le.Uint64(rest[8:])})
		end += int64(4 + len(record))
	}
}

// store takes the columns of a write: times, values, ids.
func store(count int, body []byte) {
	var records []byte
	for i := 0; i < count; i++ {
		at, value := le.Uint64(body[8*i:]), le.Uint64(body[8*(count+i):])
		key := keys[le.Uint32(body[16*count+4*i:])]
		insert(key, sample{int64(at), value})
		records = append(le.AppendUint32(records, uint32(len(key))), key...)
		records = le.AppendUint64(le.AppendUint64(records, at), value)
	}
	if file != nil {
		check(file.Write(records))
	}
}

func check(_ int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) // tsb shows what was written to stderr
	}
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	levels := ""
	if place := os.Getenv("TSB_PLACE"); place != "" {
		opened, err := os.OpenFile(filepath.Join(place, "samples"), os.O_RDWR|os.O_CREATE, 0o644)
		check(0, err)
		file = opened
		end := load()
		check(0, file.Truncate(end))
		_, err = file.Seek(end, io.SeekStart)
		check(0, err)
		levels = " acknowledges=buffered reaches=synced persistent=1"
	}
	fmt.Fprintf(out, "tsb-exec 1 binary name=go special=1%s\n", levels)
	out.Flush()
	in := bufio.NewReader(os.Stdin)
	for {
		var head [16]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		body := make([]byte, le.Uint32(head[:]))
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		verb, number, count := le.Uint32(head[4:]), le.Uint32(head[8:]), int(le.Uint32(head[12:]))
		answer := func(verb uint32, count int, payload []byte) {
			header := le.AppendUint32(le.AppendUint32(nil, uint32(len(payload))), verb)
			out.Write(le.AppendUint32(le.AppendUint32(header, number), uint32(count)))
			out.Write(payload)
		}
		switch verb {
		case define:
			for rest := body; len(rest) > 0; {
				length := le.Uint32(rest[4:])
				keys[le.Uint32(rest)] = string(rest[8 : 8+length])
				rest = rest[8+length:]
			}
		case write:
			store(count, body)
		case query:
			start, end := int64(le.Uint64(body)), int64(le.Uint64(body[8:]))
			for i := 0; i < count; i++ {
				id := le.Uint32(body[16+4*i:])
				list := samples[keys[id]]
				from := sort.Search(len(list), func(i int) bool { return list[i].at >= start })
				to := sort.Search(len(list), func(i int) bool { return list[i].at >= end })
				for ; from < to; from += 4096 {
					part := list[from:min(from+4096, to)]
					payload := le.AppendUint32(le.AppendUint32(nil, id), 0)
					for _, row := range part {
						payload = le.AppendUint64(payload, uint64(row.at))
					}
					for _, row := range part {
						payload = le.AppendUint64(payload, row.value)
					}
					answer(rows, len(part), payload)
				}
			}
		case newest:
			var payload []byte
			for i := 0; i < count; i++ {
				list := samples[keys[le.Uint32(body[4*i:])]]
				at := int64(none)
				if len(list) > 0 {
					at = list[len(list)-1].at
				}
				payload = le.AppendUint64(payload, uint64(at))
			}
			answer(newestAnswer, count, payload)
			out.Flush()
			continue
		case flush, closing:
			if file != nil {
				check(0, file.Sync())
			}
		case stats:
			answer(statsAnswer, 0, le.AppendUint64(le.AppendUint64(nil, uint64(total)), uint64(16*total)))
			out.Flush()
			continue
		}
		answer(ok, 0, nil)
		out.Flush()
		if verb == closing {
			return
		}
	}
}
