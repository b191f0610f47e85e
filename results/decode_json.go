package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// decodeExactly keeps the digits of what has no type.
func decodeExactly(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(into)
}

// badJSON says what is wrong with what isn't JSON; that it was cut short, where it was.
func badJSON(data []byte) error {
	err := json.Unmarshal(data, new(any))
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return errors.New("it is empty")
	}
	if syntax.Offset >= int64(len(data)) {
		return fmt.Errorf("it ends in the middle, after %d bytes: %w", len(data), err)
	}
	return fmt.Errorf("no JSON, from byte %d: %w", syntax.Offset, err)
}
