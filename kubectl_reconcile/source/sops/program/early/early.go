// Package early has the program open no file from before any library begins.
//
// SOPS's audit package opens /etc/sops/audit.yaml as it is initialised, and whatever database that names, before main begins. Packages are initialised
// in the order of their paths as soon as what they import is, and this one's path is before that of any library: hence the name of the module.
package early

import (
	"syscall"
	"time"
)

func init() {
	time.AfterFunc(time.Hour, func() {}).Stop() // what waits for clocks and pipes has two descriptors, from the first timer on
	var most syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most); err != nil {
		return // main finds that files can be opened, and ends
	}
	most.Cur, most.Max = 3, 3
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &most)
}

// Closed tells whether no file can be opened.
func Closed() bool {
	descriptor, err := syscall.Open("/dev/null", syscall.O_RDONLY, 0)
	if err == nil {
		syscall.Close(descriptor)
	}
	return err != nil
}
