package main

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/getsops/sops/v3"
)

// watched is SOPS's cipher, of which is known what it could not decrypt.
type watched struct {
	cipher sops.Cipher
	// other makes another value of one, where that is asked for.
	other func(any) any
	// at is the path of what could not be decrypted, which isn't encrypted at all where isPlain.
	at      string
	isPlain bool
}

// Decrypt returns a value, or another in its place where that is asked for.
func (w *watched) Decrypt(ciphertext string, key []byte, path string) (any, error) {
	value, err := w.cipher.Decrypt(ciphertext, key, path)
	if err != nil {
		w.at, w.isPlain = strings.TrimSuffix(path, ":"), !strings.HasPrefix(ciphertext, "ENC[")
		return nil, err
	}
	if w.other != nil {
		return w.other(value), nil
	}
	return value, nil
}

// Encrypt refuses: nothing is encrypted here.
func (w *watched) Encrypt(any, []byte, string) (string, error) { return "", errNot }

// fault says why a file can't be decrypted, after an error of the library.
func (w *watched) fault(err error) *done {
	at := strings.ReplaceAll(w.at, ":", ".")
	switch {
	case at == "" || strings.Contains(err.Error(), "as string, but got"):
		return &done{Fault: "has a value that isn't encrypted where all are", Hint: "sops edits such files, and encrypts what was added"}
	case w.isPlain:
		return &done{Fault: "has a value that isn't encrypted where all are", At: at, Hint: "sops edits such files, and encrypts what was added"}
	}
	return &done{Fault: "has a value that was changed, cut short, or moved here from another key", At: at, Hint: repairIt}
}

// tellsNothing are texts that stand for a choice of a few, and shortNumber is how many digits a number has that could be any.
var tellsNothing = map[string]bool{"true": true, "false": true, "null": true, "none": true, "yes": true, "no": true, "on": true, "off": true, "": true}

const shortNumber = 4

// otherThan returns what makes other values, of all or of those that are telling: the rest decides what a chart has at all.
func otherThan(which string) func(any) any {
	if which == "telling" {
		return func(value any) any {
			if isHarmless(value) {
				return value
			}
			return other(value)
		}
	}
	return other
}

func isHarmless(value any) bool {
	switch value := value.(type) {
	case bool:
		return true
	case int:
		return len(strconv.Itoa(value)) <= shortNumber
	case float64:
		return len(strconv.FormatFloat(value, 'f', -1, 64)) <= shortNumber
	case string:
		_, err := strconv.Atoi(value)
		return tellsNothing[strings.ToLower(value)] || (err == nil && len(value) <= shortNumber)
	}
	return false
}

// other returns another value of the same sort: letters for letters, digits for digits, one longer, since how long it is tells something, too.
func other(value any) any {
	switch value := value.(type) {
	case bool:
		return !value
	case int:
		return value ^ 0x155
	case float64:
		return value*2 + 1.5
	case time.Time:
		return value.Add(1000 * time.Hour)
	case []byte:
		return append(otherBytes(value), 0xff)
	case string:
		return otherText(value)
	case sops.Comment:
		return sops.Comment{Value: otherText(value.Value), Inline: value.Inline}
	}
	return value
}

func otherText(text string) string {
	if decoded, err := base64.StdEncoding.Strict().DecodeString(text); err == nil && len(decoded) > 0 {
		if utf8.Valid(decoded) {
			return base64.StdEncoding.EncodeToString([]byte(turned(string(decoded))))
		}
		return base64.StdEncoding.EncodeToString(append(otherBytes(decoded), 0xff))
	}
	return turned(text)
}

func turned(text string) string {
	end := len(strings.TrimRight(text, " \t\r\n"))
	return strings.Map(turn, text[:end]) + "x" + text[end:]
}

func turn(each rune) rune {
	switch {
	case each >= 'a' && each <= 'z':
		return 'a' + (each-'a'+13)%26
	case each >= 'A' && each <= 'Z':
		return 'A' + (each-'A'+13)%26
	case each >= '0' && each <= '9':
		return '0' + (each-'0'+5)%10
	}
	return each
}

func otherBytes(data []byte) []byte {
	found := make([]byte, len(data), len(data)+1)
	for at, each := range data {
		found[at] = ^each
	}
	return found
}
