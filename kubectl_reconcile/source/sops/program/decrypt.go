package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/getsops/sops/v3"
	"github.com/getsops/sops/v3/aes"
	"github.com/getsops/sops/v3/config"
	"github.com/getsops/sops/v3/keyservice"
	"github.com/getsops/sops/v3/stores/dotenv"
	"github.com/getsops/sops/v3/stores/ini"
	"github.com/getsops/sops/v3/stores/json"
	"github.com/getsops/sops/v3/stores/yaml"
)

const (
	repairIt = "take it from where it was right, or encrypt it again"
	listed   = 3
)

var atLine = regexp.MustCompile(`line (\d+)`)

// decrypted returns what a file says; where a library fails in a way that it has no error for, that is said.
func decrypted(asked *order) (said *done) {
	defer func() {
		if recover() != nil {
			said = &done{Fault: "can't be decrypted: it isn't made as SOPS makes files", Hint: repairIt}
		}
	}()
	store := storeOf(asked.Format)
	if store == nil {
		return &done{Fault: "has a format that isn't known"}
	}
	if fault := beyond(asked.Format, asked.Data); fault != "" {
		return &done{Fault: fault, Hint: "split it into smaller ones"}
	}
	keys, fault := ringOf(asked)
	if fault != "" {
		return &done{Fault: "can't be decrypted: " + fault}
	}
	tree, err := store.LoadEncryptedFile(asked.Data)
	if err != nil {
		return unread(asked.Format, err)
	}
	if fault := tooMany(&tree); fault != "" {
		return &done{Fault: fault, Hint: "encrypt it for fewer"}
	}
	dataKey, err := tree.Metadata.GetDataKeyWithKeyServices([]keyservice.KeyServiceClient{keys}, sops.DefaultDecryptionOrder)
	if err != nil {
		return noKey(&tree)
	}
	cipher := &watched{cipher: aes.NewCipher()}
	mac, err := tree.Decrypt(dataKey, cipher)
	if err != nil {
		return cipher.fault(err)
	}
	stated, err := aes.NewCipher().Decrypt(tree.Metadata.MessageAuthenticationCode, dataKey, tree.Metadata.LastModified.Format(time.RFC3339))
	switch {
	case tree.Metadata.MessageAuthenticationCode == "":
		return &done{Fault: "has no MAC, so anything in it may be somebody else's", At: "sops.mac", Hint: repairIt}
	case err != nil:
		return &done{Fault: "has a MAC or a time of change that was changed", At: "sops.mac", Hint: repairIt}
	case stated != mac:
		return &done{
			Fault: "was changed after it was encrypted: its MAC is that of other values, of others in number, or of another order",
			At:    "sops.mac", Hint: "sops edits such files, and encrypts what was added; " + repairIt,
		}
	}
	if asked.Alter != "" {
		if tree, err = store.LoadEncryptedFile(asked.Data); err != nil {
			return unread(asked.Format, err)
		}
		if _, err = tree.Decrypt(dataKey, &watched{cipher: aes.NewCipher(), other: otherThan(asked.Alter)}); err != nil {
			return &done{Fault: "can't be decrypted twice"}
		}
	}
	plain, err := store.EmitPlainFile(tree.Branches)
	if err != nil {
		return &done{Fault: "can't be written in its format once it is decrypted", Hint: repairIt}
	}
	return &done{Data: plain, MACOnlyEncrypted: tree.Metadata.MACOnlyEncrypted}
}

func storeOf(format string) sops.Store {
	stores := config.NewStoresConfig()
	switch format {
	case "yaml":
		return yaml.NewStore(&stores.YAML)
	case "json":
		return json.NewStore(&stores.JSON)
	case "dotenv":
		return dotenv.NewStore(&stores.Dotenv)
	case "ini":
		return ini.NewStore(&stores.INI)
	case "binary":
		return json.NewBinaryStore(&stores.JSONBinary)
	}
	return nil
}

func unread(format string, err error) *done {
	if errors.Is(err, sops.MetadataNotFound) {
		return &done{Fault: "has no metadata of SOPS that can be read", At: "sops", Hint: repairIt}
	}
	said := &done{Fault: "can't be read as " + format + ": it is cut short, or was edited by hand", Hint: repairIt}
	if found := atLine.FindStringSubmatch(err.Error()); found != nil {
		said.Line, _ = strconv.Atoi(found[1])
	}
	return said
}

// noKey says for whom a file is encrypted: public keys, and names of key services.
func noKey(tree *sops.Tree) *done {
	var ours, others []string
	for _, group := range tree.Metadata.KeyGroups {
		for _, key := range group {
			switch name := key.TypeToIdentifier(); name {
			case "age":
				ours = append(ours, "age "+key.ToString())
			case "pgp":
				ours = append(ours, "OpenPGP "+key.ToString())
			default:
				others = append(others, name)
			}
		}
	}
	groups := len(tree.Metadata.KeyGroups)
	switch {
	case len(ours) == 0 && len(others) > 0:
		return &done{
			Fault: "is encrypted for key services alone, which aren't asked: " + first(others),
			At:    "sops", Hint: "encrypt it for an age or OpenPGP key, too",
		}
	case groups > 1:
		return &done{
			Fault: fmt.Sprintf("needs keys of %d of its %d groups, and those that are here don't fit so many", tree.Metadata.ShamirThreshold, groups),
			At:    "sops.key_groups", Hint: "add keys of other groups to the Secret",
		}
	}
	return &done{Fault: "is for other keys than those that are here: " + first(ours), At: "sops", Hint: "sops updatekeys encrypts it for another key, too"}
}

func first(names []string) string {
	seen := map[string]bool{}
	var told []string
	for _, each := range names {
		if each = short(each); !seen[each] {
			seen[each] = true
			told = append(told, each)
		}
	}
	if len(told) > listed {
		return fmt.Sprintf("%s and %d more", strings.Join(told[:listed], ", "), len(told)-listed)
	}
	return strings.Join(told, ", ")
}

func short(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
