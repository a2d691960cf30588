"""Reads just enough of a GGUF file to damage it in one place."""

import struct

SCALAR_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
                  12: "d"}
STRING, ARRAY = 8, 9


class Gguf:
    """The bytes of a file, and where each value and tensor record lies in them."""

    def __init__(self, path):
        self.bytes = bytearray(path.read_bytes())
        self.at = 8
        n_tensors, n_keys = self._take("Q"), self._take("Q")
        self.values = {}   # key: (type, offset of the value)
        self.tensors = {}  # name: {field of its record: offset of the field}
        self.alignment = 32
        for _ in range(n_keys):
            key = self._text()
            kind = self._take("I")
            self.values[key] = (kind, self.at)
            self._skip(kind)
        for _ in range(n_tensors):
            name = self._text()
            n_dims_at = self.at
            n_dims = self._take("I")
            dims_at = self.at
            self.at += 8 * n_dims
            self.tensors[name] = {"n_dims": n_dims_at, "dims": dims_at, "type": self.at,
                                  "offset": self.at + 4}
            self.at += 12
        self.data = (self.at + self.alignment - 1) // self.alignment * self.alignment

    def _take(self, form):
        value, = struct.unpack_from("<" + form, self.bytes, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def _text(self):
        n_bytes = self._take("Q")
        text = bytes(self.bytes[self.at:self.at + n_bytes]).decode()
        self.at += n_bytes
        return text

    def _skip(self, kind):
        if kind == STRING:
            self._text()
        elif kind == ARRAY:
            element = self._take("I")
            for _ in range(self._take("Q")):
                self._skip(element)
        else:
            self._take(SCALAR_FORMATS[kind])

    def put(self, offset, form, *values):
        struct.pack_into("<" + form, self.bytes, offset, *values)
        return self

    def put_tensor(self, name, field, form, *values):
        """Another "n_dims", "dims", "type" or "offset" in a tensor's record."""
        return self.put(self.tensors[name][field], form, *values)

    def put_text(self, key, text):
        """Another text of the same length."""
        _, offset = self.values[key]
        encoded = text.encode()
        n_bytes, = struct.unpack_from("<Q", self.bytes, offset)
        assert len(encoded) == n_bytes, "damage must not move what follows"
        self.bytes[offset + 8:offset + 8 + n_bytes] = encoded
        return self

    def put_tensor_f32(self, name, index, value):
        offset, = struct.unpack_from("<Q", self.bytes, self.tensors[name]["offset"])
        return self.put(self.data + offset + 4 * index, "f", value)

    def write(self, path):
        path.write_bytes(bytes(self.bytes))
        return path
