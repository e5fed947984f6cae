// The server side of a WebSocket (RFC 6455), as much of it as the Stripe CLI needs.

import { createHash } from 'node:crypto';

const HANDSHAKE_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const [CONTINUATION, TEXT, CLOSE, PING, PONG] = [0x0, 0x1, 0x8, 0x9, 0xa];

/** Completes the handshake. `onText` is called with each message. Returns a function that sends a text. */
export function acceptWebSocket(request, socket, onText) {
  const key = createHash('sha1').update(`${request.headers['sec-websocket-key']}${HANDSHAKE_GUID}`).digest('base64');
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n\r\n`,
  );
  let [received, message] = [Buffer.alloc(0), []];
  socket.on('data', (part) => {
    received = Buffer.concat([received, part]);
    for (let frame = readFrame(received); frame; frame = readFrame(received)) {
      received = received.subarray(frame.size);
      if (frame.opcode === CLOSE) return socket.end(encodeFrame(CLOSE, frame.payload));
      if (frame.opcode === PING) socket.write(encodeFrame(PONG, frame.payload));
      if (frame.opcode !== TEXT && frame.opcode !== CONTINUATION) continue;
      message.push(frame.payload);
      if (!frame.isLast) continue;
      const text = Buffer.concat(message).toString();
      message = [];
      onText(text);
    }
  });
  socket.on('error', () => socket.destroy());
  return (text) => socket.write(encodeFrame(TEXT, Buffer.from(text)));
}

/** Reads a frame of a client, which is masked. Returns undefined if it is not complete. */
function readFrame(bytes) {
  if (bytes.length < 2) return undefined;
  const short = bytes[1] & 0x7f;
  const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
  const start = 2 + lengthBytes + 4;
  if (bytes.length < start) return undefined;
  const length = lengthBytes === 2 ? bytes.readUInt16BE(2) : lengthBytes === 8 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (bytes.length < start + length) return undefined;
  const mask = bytes.subarray(start - 4, start);
  const payload = Buffer.from(bytes.subarray(start, start + length)).map((byte, at) => byte ^ mask[at % 4]);
  return { opcode: bytes[0] & 0x0f, isLast: (bytes[0] & 0x80) !== 0, payload, size: start + length };
}

function encodeFrame(opcode, payload) {
  const header = Buffer.alloc(10);
  header[0] = 0x80 | opcode;
  if (payload.length < 126) {
    header[1] = payload.length;
    return Buffer.concat([header.subarray(0, 2), payload]);
  }
  if (payload.length < 65_536) {
    header[1] = 126;
    header.writeUInt16BE(payload.length, 2);
    return Buffer.concat([header.subarray(0, 4), payload]);
  }
  header[1] = 127;
  header.writeBigUInt64BE(BigInt(payload.length), 2);
  return Buffer.concat([header, payload]);
}
