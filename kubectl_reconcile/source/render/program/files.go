package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var errReadOnly = errors.New("rendering writes no files")

// source is the tree of one revision as kustomize sees it. Its root is "/"; what is outside isn't there.
type source struct {
	pipe *pipe
	// root is the overlay's own kustomization file, from which objects learn where they come from.
	root func(path string, data []byte) []byte
	// ahead is what files hold that were looked at and not read yet.
	ahead map[string][]byte
}

func newSource(p *pipe, root func(path string, data []byte) []byte) *source {
	return &source{p, root, map[string][]byte{}}
}

// inside returns the path from the root of the source of what a library calls so.
func inside(name string) string {
	at := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(name)), "/")
	if watched == nil || watched.over == nil {
		return at
	}
	if at == mountedAt {
		return ""
	}
	return strings.TrimPrefix(at, mountedAt+"/")
}

// look returns what kind of thing is somewhere.
func (s *source) look(name string) (string, error) {
	if held, isBeside := watched.over.beside(name); isBeside {
		return held.Kind, wrong(inside(name), held)
	}
	at := inside(name)
	got := s.pipe.ask(word{Look: &at})
	if len(got.Data) > 0 {
		s.ahead[at] = got.Data
	}
	return got.Kind, wrong(at, got)
}

// wrong returns what keeps an answer from being used.
func wrong(at string, got found) error {
	switch got.Kind {
	case "file", "folder":
		return nil
	case "link":
		return fmt.Errorf("'%s' is a symbolic link, which isn't followed", at)
	case "absent":
		return &os.PathError{Op: "open", Path: at, Err: os.ErrNotExist}
	default:
		return fmt.Errorf("'%s' %s", at, got.Why)
	}
}

// CleanedAbs returns the folder of a path, and the name in it of a file.
func (s *source) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	kind, err := s.look(name)
	if err != nil {
		return "", "", err
	}
	absolute := path.Clean("/" + filepath.ToSlash(name))
	if kind == "folder" {
		return filesys.ConfirmedDir(absolute), "", nil
	}
	return filesys.ConfirmedDir(path.Dir(absolute)), path.Base(absolute), nil
}

// ReadFile returns what the file at a path holds.
func (s *source) ReadFile(name string) ([]byte, error) {
	if held, isBeside := watched.over.beside(name); isBeside {
		return s.root(inside(name), held.Data), wrong(inside(name), held)
	}
	at := inside(name)
	if data, there := s.ahead[at]; there {
		delete(s.ahead, at)
		return s.root(at, data), nil
	}
	got := s.pipe.ask(word{Read: &at})
	if err := wrong(at, got); err != nil {
		return nil, err
	}
	if got.Kind != "file" {
		return nil, fmt.Errorf("'%s' is a folder", at)
	}
	return s.root(at, got.Data), nil
}

// IsDir tells whether a folder is at a path.
func (s *source) IsDir(name string) bool {
	kind, err := s.look(name)
	return err == nil && kind == "folder"
}

// Exists tells whether anything that may be read is at a path.
func (s *source) Exists(name string) bool {
	_, err := s.look(name)
	return err == nil
}

func (s *source) Create(string) (filesys.File, error) { return nil, errReadOnly }
func (s *source) Mkdir(string) error                  { return errReadOnly }
func (s *source) MkdirAll(string) error               { return errReadOnly }
func (s *source) RemoveAll(string) error              { return errReadOnly }
func (s *source) WriteFile(string, []byte) error      { return errReadOnly }
func (s *source) Open(string) (filesys.File, error) {
	return nil, errors.New("rendering opens no files")
}
func (s *source) ReadDir(string) ([]string, error) {
	return nil, errors.New("rendering lists no folders")
}
func (s *source) Glob(string) ([]string, error) { return nil, errors.New("rendering lists no folders") }
func (s *source) Walk(string, filepath.WalkFunc) error {
	return errors.New("rendering lists no folders")
}
