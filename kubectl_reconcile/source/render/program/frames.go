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

// heard is one frame from the caller: an order, or the answer to a question.
type heard struct {
	Kustomize *overlay `json:"kustomize,omitempty"`
	Found     *found   `json:"found,omitempty"`
}

// overlay is what to render: a folder of the source, by its path from the root.
type overlay struct {
	Path string `json:"path"`
	// MostBytes is how much the objects may take together.
	MostBytes int `json:"mostBytes"`
}

// found says what is at a path.
type found struct {
	// Kind is file, folder, link, absent, or refused.
	Kind string `json:"kind"`
	// Data is what a file holds, in base64, where it was asked for.
	Data []byte `json:"data,omitempty"`
	// Why is the reason of a refusal.
	Why string `json:"why,omitempty"`
}

// word is one frame to the caller.
type word struct {
	Hello string  `json:"hello,omitempty"`
	Look  *string `json:"look,omitempty"`
	Read  *string `json:"read,omitempty"`
	Done  *done   `json:"done,omitempty"`
}

// done is what came of an order: objects, or an error.
type done struct {
	Objects []object `json:"objects"`
	Notices []string `json:"notices,omitempty"`
	// Unmatched are the entries that were for something which isn't there: kustomize doesn't mind.
	Unmatched []note `json:"unmatched,omitempty"`
	Error     string `json:"error,omitempty"`
	// Failed is the entry whose step failed, where it was a step.
	Failed *note `json:"failed,omitempty"`
}

// object is one rendered object as YAML, and the file from the root of the source that it comes from.
type object struct {
	YAML string `json:"yaml"`
	File string `json:"file"`
}

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
		data, err = json.Marshal(word{Done: &done{Error: "what it renders to is too long for one answer"}})
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

// ask sends a question and returns its answer.
func (p *pipe) ask(w word) found {
	p.send(w)
	frame := <-p.incoming
	if frame.Found == nil {
		println("an answer that answers nothing")
		os.Exit(4)
	}
	return *frame.Found
}
