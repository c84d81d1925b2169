package main

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"time"
)

// largest is how long a frame may be, in bytes; the caller has the same bound.
const largest = 96 << 20

// pipe is what a program hears and says: frames of four bytes of length, the most significant first, and so many bytes of JSON.
//
// Each program says for itself what is heard, which word it says, and what instead of one that is tooLong.
type pipe struct {
	incoming chan heard
	out      io.Writer
}

// newPipe listens to in. When that ends, so does the program, whatever it is doing.
func newPipe(in io.Reader, out io.Writer) *pipe {
	p := &pipe{make(chan heard), out}
	go func() {
		for {
			p.incoming <- receive(in)
		}
	}()
	return p
}

func receive(in io.Reader) heard {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		os.Exit(0)
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > largest {
		println("a frame that is too long")
		os.Exit(4)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(in, data); err != nil {
		os.Exit(0)
	}
	var frame heard
	if err := json.Unmarshal(data, &frame); err != nil {
		println("a frame that is no JSON")
		os.Exit(4)
	}
	return frame
}

// next returns the next frame, and calls rest once if that takes longer than after.
func (p *pipe) next(after time.Duration, rest func()) heard {
	select {
	case frame := <-p.incoming:
		return frame
	case <-time.After(after):
		rest()
		return <-p.incoming
	}
}

func (p *pipe) send(w word) {
	data, err := json.Marshal(w)
	if err == nil && len(data) > largest {
		data, err = json.Marshal(tooLong())
	}
	if err != nil {
		println("a frame that can't be written")
		os.Exit(4)
	}
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(data)))
	if _, err := p.out.Write(append(length[:], data...)); err != nil {
		os.Exit(0)
	}
}
