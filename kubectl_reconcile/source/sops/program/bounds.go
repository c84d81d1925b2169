package main

import (
	"bytes"
	"fmt"

	"github.com/getsops/sops/v3"
	"go.yaml.in/yaml/v3"
)

// What a file may have: more is refused before any work is done for it.
const (
	mostDocuments = 1_000
	mostKeys      = 1_000
	mostGroups    = 50
	mostKeyBytes  = 512 << 10
	mostDepth     = 500
	mostNodes     = 1_000_000
)

// beyond says what a file has too much of; it looks at bytes alone, and at what YAML refers to.
func beyond(format string, data []byte) string {
	if bytes.Count(data, []byte("BEGIN AGE"))+bytes.Count(data, []byte("BEGIN PGP MESSAGE")) > mostKeys*(1+bytes.Count(data, []byte("\n---"))) {
		return fmt.Sprintf("is encrypted for more than %d keys", mostKeys)
	}
	switch format {
	case "yaml":
		if bytes.Count(data, []byte("\n---")) >= mostDocuments {
			return fmt.Sprintf("has more than %d documents", mostDocuments)
		}
		return beyondNodes(data)
	case "json", "binary":
		if depthOf(data) > mostDepth {
			return tooDeep()
		}
	}
	return ""
}

func tooDeep() string { return fmt.Sprintf("is nested deeper than %d", mostDepth) }

// depthOf returns how deep JSON is nested.
func depthOf(data []byte) int {
	depth, deepest, quoted := 0, 0, false
	for at := 0; at < len(data); at++ {
		switch each := data[at]; {
		case quoted && each == '\\':
			at++
		case each == '"':
			quoted = !quoted
		case quoted:
		case each == '[' || each == '{':
			depth++
			deepest = max(deepest, depth)
		case each == ']' || each == '}':
			depth--
		}
	}
	return deepest
}

// beyondNodes tells of YAML that is nested deeply, or that comes to very much once what it refers to is in the place of the references.
func beyondNodes(data []byte) string {
	if !bytes.Contains(data, []byte("*")) && bytes.Count(data, []byte("[")) < mostDepth*2 && !isIndented(data) {
		return ""
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var node yaml.Node
		if decoder.Decode(&node) != nil {
			return "" // the end, or what the library finds wrong again
		}
		size, depth := weigh(&node, map[*yaml.Node][2]int{})
		switch {
		case depth > mostDepth:
			return tooDeep()
		case size > mostNodes:
			return "refers to itself so often that it comes to more than a million values"
		}
	}
}

// isIndented tells whether some line begins with so many blanks that it may be nested deeply.
func isIndented(data []byte) bool {
	return bytes.Contains(data, bytes.Repeat([]byte(" "), mostDepth)) || bytes.Contains(data, bytes.Repeat([]byte("- "), mostDepth))
}

// weigh returns how many nodes there are, references followed, and how deep they are nested.
func weigh(node *yaml.Node, known map[*yaml.Node][2]int) (int, int) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if found, there := known[node]; there {
		return found[0], found[1]
	}
	known[node] = [2]int{mostNodes + 1, 0} // one that contains itself
	size, depth := 1, 0
	for _, each := range node.Content {
		more, below := weigh(each, known)
		size, depth = min(size+more, mostNodes+1), max(depth, below)
	}
	known[node] = [2]int{size, depth + 1}
	return size, depth + 1
}

// tooMany says what the metadata has too much of.
func tooMany(tree *sops.Tree) string {
	keys, size := 0, 0
	for _, group := range tree.Metadata.KeyGroups {
		for _, key := range group {
			keys++
			size += len(key.EncryptedDataKey())
		}
	}
	switch {
	case keys > mostKeys:
		return fmt.Sprintf("is encrypted for more than %d keys", mostKeys)
	case len(tree.Metadata.KeyGroups) > mostGroups:
		return fmt.Sprintf("has more than %d groups of keys", mostGroups)
	case size > mostKeyBytes:
		return fmt.Sprintf("has keys of more than %d KiB", mostKeyBytes>>10)
	}
	return ""
}
