// Command reconcile-sops decrypts files of SOPS for kubectl-reconcile, which is its only caller.
//
// Vocabulary: a *frame* is four bytes of length, the most significant first, and so many bytes of JSON. On stdin come frames with
// orders, on stdout go frames with results; see frames.go. An order has the keys and what a file holds, so the program sees no disk, no network
// and no other process: no file can be opened from before the first library begins (early), and on Linux the kernel is told the rest
// (fence_linux.go, which it shares with the program that renders). It knows age's native keys and OpenPGP keys alone (keys.go): no key service of a
// cloud is asked, no agent, no plugin.
//
// What is said of a file that can't be decrypted is said here, never by a library: their errors quote values.
package main

import (
	"io"
	"os"
	"runtime/debug"
	"time"

	"a.kubectl-reconcile.dev/sops/early"

	"github.com/getsops/sops/v3/logging"
	"github.com/sirupsen/logrus"
)

// version is set when the program is linked, to the digest of its sources: the caller wants the program that it was written with.
var version = "unknown"

const (
	// idle is how long nothing is asked before memory is given back.
	idle = time.Second
	// mostMemory is where the garbage collector does all that it can, well before the caller's limit ends the program.
	mostMemory = 96 << 20
)

func main() {
	os.Clearenv()
	if !early.Closed() {
		println("files can be opened")
		os.Exit(3)
	}
	if err := fence(); err != nil {
		println("no fence: " + err.Error())
		os.Exit(3)
	}
	debug.SetMemoryLimit(mostMemory)
	for _, each := range logging.Loggers { // what they say may have values in it
		each.SetOutput(io.Discard)
		each.SetLevel(logrus.PanicLevel)
	}
	pipe := newPipe(os.Stdin, os.Stdout)
	pipe.send(word{Hello: version})
	for {
		asked := pipe.next(idle, debug.FreeOSMemory)
		if asked.Decrypt == nil {
			println("an order that isn't known")
			os.Exit(4)
		}
		pipe.send(word{Done: decrypted(asked.Decrypt)})
	}
}
