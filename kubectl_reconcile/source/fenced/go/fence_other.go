//go:build !linux

package main

// fence has nothing to ask of other kernels.
func fence() error { return nil }
