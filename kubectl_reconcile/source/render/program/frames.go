package main

import "os"

// heard is one frame from the caller: an order, or the answer to a question.
type heard struct {
	Kustomize *overlay    `json:"kustomize,omitempty"`
	Helm      *chartOrder `json:"helm,omitempty"`
	Found     *found      `json:"found,omitempty"`
}

// overlay is what to render: a folder of the source, by its path from the root.
type overlay struct {
	Path string `json:"path"`
	// MostBytes is how much the objects may take together.
	MostBytes int `json:"mostBytes"`
	// Origins asks for the trace of each field, which is slow.
	Origins bool `json:"origins,omitempty"`
	// Over is what is made of it further, or of other objects.
	Over *over `json:"over,omitempty"`
}

// over is a kustomization that stands beside the source, in overFolder, and not in it.
type over struct {
	Kustomization string `json:"kustomization"`
	// Resources are the objects that it is for, where it isn't for an overlay of the source: by their numbers they are its files.
	Resources []object `json:"resources,omitempty"`
}

// chartOrder is what to render: the folder of a chart, and what goes into it.
type chartOrder struct {
	Path string `json:"path"`
	// MostBytes is how much the objects may take together.
	MostBytes   int          `json:"mostBytes"`
	Release     string       `json:"release"`
	Namespace   string       `json:"namespace"`
	ValuesFiles []valuesFile `json:"valuesFiles"`
	// Values are those that win over the files', as JSON.
	Values   string `json:"values"`
	SkipCRDs bool   `json:"skipCRDs"`
	// KubeVersion and APIVersions are the cluster's; without them those that Helm was built with.
	KubeVersion string   `json:"kubeVersion"`
	APIVersions []string `json:"apiVersions"`
	// Lookups are objects of the cluster as JSON, by what asks for them, "v1 Secret namespace/name"; others aren't there.
	Lookups map[string]string `json:"lookups"`
}

// valuesFile is a file of values by its path from the root of the source.
type valuesFile struct {
	Path          string `json:"path"`
	IgnoreMissing bool   `json:"ignoreMissing"`
}

// found says what is at a path.
type found struct {
	// Kind is file, folder, link, absent, or refused.
	Kind string `json:"kind"`
	// Data is what a file holds, in base64, where it was asked for, or where it is small: what is looked at is mostly read next.
	Data []byte `json:"data,omitempty"`
	// Entries are the kinds of what is in a folder, by name, where they were asked for.
	Entries map[string]string `json:"entries,omitempty"`
	// Why is the reason of a refusal.
	Why string `json:"why,omitempty"`
}

// word is one frame to the caller.
type word struct {
	Hello string  `json:"hello,omitempty"`
	Look  *string `json:"look,omitempty"`
	Read  *string `json:"read,omitempty"`
	List  *string `json:"list,omitempty"`
	Done  *done   `json:"done,omitempty"`
}

// done is what came of an order: objects, or an error.
type done struct {
	Objects []object `json:"objects"`
	Notices []string `json:"notices,omitempty"`
	// Steps are those that the traces name.
	Steps []note `json:"steps,omitempty"`
	// Unmatched are the entries that were for something which isn't there: kustomize doesn't mind.
	Unmatched []note `json:"unmatched,omitempty"`
	Error     string `json:"error,omitempty"`
	// Failed is the entry whose step failed, where it was a step.
	Failed *note `json:"failed,omitempty"`
	// At is the file that the error is about, where that is known without reading it.
	At string `json:"at,omitempty"`
	// Again are the objects of a second rendering, in which everything is another that is drawn by chance or from the clock.
	Again []object `json:"again,omitempty"`
	// Drawn is how often each function was called that does so.
	Drawn map[string]int `json:"drawn,omitempty"`
	// Lookups are the objects of the cluster that were asked for, also by a chart that then failed.
	Lookups []string `json:"lookups,omitempty"`
	// Templates are files of the source by what messages call them.
	Templates map[string]string `json:"templates,omitempty"`
	// Values are all that a message must not have.
	Values []any `json:"values,omitempty"`
}

// object is one rendered object as YAML, and the file from the root of the source that it comes from.
type object struct {
	YAML string `json:"yaml"`
	File string `json:"file"`
	// Trace tells which steps gave each field its value, by their numbers in Steps.
	Trace *traced `json:"trace,omitempty"`
}

// tooLong is what is said instead of a word that is longer than a frame may be.
func tooLong() word {
	return word{Done: &done{Error: "what it renders to is too long for one answer"}}
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
