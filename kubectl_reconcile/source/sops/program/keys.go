package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/ProtonMail/go-crypto/openpgp"
	pgparmor "github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/getsops/sops/v3/keyservice"
	"google.golang.org/grpc"
)

// longest is how long an encrypted data key may be once it is decrypted; it has 32 bytes, or a few more as a share.
const longest = 1 << 10

var errNot = errors.New("not a key of this kind")

// ring is the only key service: the keys that came with an order.
type ring struct {
	ids    []age.Identity
	armour openpgp.EntityList
}

// ringOf returns the keys of an order, or a sentence about what can't be used.
func ringOf(asked *order) (ring, string) {
	var found ring
	for _, text := range asked.Age {
		ids, err := age.ParseIdentities(strings.NewReader(text))
		switch {
		case err == nil:
			found.ids = append(found.ids, ids...)
		case strings.Contains(text, "AGE-PLUGIN-"):
			return ring{}, "an age key is one of a plugin, and plugins aren't run"
		default:
			return ring{}, "an age key can't be read: it isn't a file of AGE-SECRET-KEY-1 lines"
		}
	}
	for _, text := range asked.OpenPGP {
		entities, err := openpgp.ReadArmoredKeyRing(strings.NewReader(text))
		if err != nil {
			return ring{}, "an OpenPGP key can't be read: it isn't what gpg --armor --export-secret-keys writes"
		}
		for _, each := range entities {
			if each.PrivateKey == nil {
				return ring{}, "an OpenPGP key has no secret part: gpg --armor --export-secret-keys exports that"
			}
			if isLocked(each) {
				return ring{}, "an OpenPGP key has a passphrase, and nobody is asked for one"
			}
		}
		found.armour = append(found.armour, entities...)
	}
	return found, ""
}

func isLocked(entity *openpgp.Entity) bool {
	for _, each := range entity.Subkeys {
		if each.PrivateKey != nil && each.PrivateKey.Encrypted {
			return true
		}
	}
	return entity.PrivateKey.Encrypted
}

// Encrypt refuses: nothing is encrypted here.
func (ring) Encrypt(context.Context, *keyservice.EncryptRequest, ...grpc.CallOption) (*keyservice.EncryptResponse, error) {
	return nil, errNot
}

// Decrypt returns the data key, or the share of one, that is encrypted for age or OpenPGP.
func (r ring) Decrypt(_ context.Context, in *keyservice.DecryptRequest, _ ...grpc.CallOption) (*keyservice.DecryptResponse, error) {
	switch in.Key.KeyType.(type) {
	case *keyservice.Key_AgeKey:
		if len(r.ids) == 0 {
			return nil, errNot
		}
		reader, err := age.Decrypt(armor.NewReader(bytes.NewReader(in.Ciphertext)), r.ids...)
		if err != nil {
			return nil, err
		}
		return taken(reader)
	case *keyservice.Key_PgpKey:
		block, err := pgparmor.Decode(bytes.NewReader(in.Ciphertext))
		if err != nil {
			return nil, err
		}
		message, err := openpgp.ReadMessage(block.Body, r.armour, nil, nil)
		if err != nil {
			return nil, err
		}
		return taken(message.UnverifiedBody)
	}
	return nil, errNot
}

func taken(reader io.Reader) (*keyservice.DecryptResponse, error) {
	plain, err := io.ReadAll(io.LimitReader(reader, longest))
	return &keyservice.DecryptResponse{Plaintext: plain}, err
}
