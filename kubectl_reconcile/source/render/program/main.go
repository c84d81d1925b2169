// Command reconcile-render renders kustomize overlays and Helm charts for kubectl-reconcile, which is its only caller.
//
// Vocabulary: a *frame* is four bytes of length, the most significant first, and so many bytes of JSON. On stdin come
// frames with orders and answers, on stdout go frames with questions and results; see frames.go. Files are asked for one by
// one as they are needed (files.go): the program sees no disk, no network and no other process, and on Linux the kernel is
// told so as well (fence_linux.go). It ends when stdin does.
//
// kustomize keeps schemas in variables of the process, so what is ordered is rendered one after the other.
package main

import (
	"errors"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// version is set when the program is linked, to the digest of its sources: the caller wants the program that it was written with.
var version = "unknown"

const (
	// idle is how long nothing is asked before memory is given back.
	idle = time.Second
	// softMemory is where the garbage collector begins to work; most overlays never get there.
	softMemory = 200 << 20
	// mostMemory is where it does all that it can, well before the caller's limit ends the program.
	mostMemory = 320 << 20
)

var errNoNetwork = errors.New("rendering has no network")

// refusing answers every HTTP request that a library makes with an error.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNoNetwork }

func main() {
	os.Clearenv()
	http.DefaultTransport = refusing{}
	http.DefaultClient = &http.Client{Transport: refusing{}}
	collectLate()
	if err := fence(); err != nil {
		println("no fence: " + err.Error())
		os.Exit(3)
	}
	if !standBefore() {
		println("this kustomize isn't the one that this was written for")
		os.Exit(3)
	}
	pipe := newPipe(os.Stdin, os.Stdout)
	pipe.send(word{Hello: version})
	for {
		order := pipe.next(idle, debug.FreeOSMemory)
		switch {
		case order.Kustomize != nil:
			pipe.send(word{Done: kustomize(pipe, order.Kustomize)})
		case order.Helm != nil:
			pipe.send(word{Done: helm(pipe, order.Helm)})
		default:
			println("an order that isn't known")
			os.Exit(4)
		}
	}
}

// collectLate has the garbage collector begin at softMemory.
func collectLate() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(softMemory)
	runtime.SetFinalizer(&unused{}, collectAgain)
}

// collectAgain runs after each collection and has the next wait until twice as much is in use as this one left, at softMemory at least.
//
// With a limit alone it works all the time as soon as what is in use comes near: a kustomization of 7 MB of CRDs took twice as long.
func collectAgain(*unused) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(max(100, int(100*softMemory/max(live[0].Value.Uint64(), 1<<20))-100))
	debug.SetMemoryLimit(mostMemory)
	runtime.SetFinalizer(&unused{}, collectAgain)
}

// unused is what nobody refers to; with a pointer in it, so that it has a place of its own.
type unused struct{ _ *byte }
