package main

// heard is one frame from the caller.
type heard struct {
	Decrypt *order `json:"decrypt,omitempty"`
}

// order is a file to decrypt, and the keys there are for it.
type order struct {
	// Format is yaml, json, dotenv, ini or binary.
	Format string `json:"format"`
	Data   []byte `json:"data"`
	// Age are files of age's native keys, OpenPGP are armoured keys without a passphrase.
	Age     []string `json:"age"`
	OpenPGP []string `json:"openpgp"`
	// Alter has other values of the same sort put in place of those that are encrypted: "all" of them, or those that are "telling".
	Alter string `json:"alter,omitempty"`
}

// word is one frame to the caller.
type word struct {
	Hello string `json:"hello,omitempty"`
	Done  *done  `json:"done,omitempty"`
}

// done is what came of an order: what the file says, or why it doesn't.
type done struct {
	Data []byte `json:"data"`
	// MACOnlyEncrypted tells that nothing protects what isn't encrypted.
	MACOnlyEncrypted bool `json:"macOnlyEncrypted,omitempty"`
	// Fault is a sentence about the file without its subject; no value is in it.
	Fault string `json:"fault,omitempty"`
	// At is the path of the key that it is about, and Line where it stands, where either is known.
	At   string `json:"at,omitempty"`
	Line int    `json:"line,omitempty"`
	// Hint says what to do.
	Hint string `json:"hint,omitempty"`
}

// tooLong is what is said instead of a word that is longer than a frame may be.
func tooLong() word {
	return word{Done: &done{Fault: "is too long once it is decrypted"}}
}
