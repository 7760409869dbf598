/** Making keys and signatures, where a person is: never in the agent, which only verifies. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { pae } from './dsse.ts';
import { keyIdOf } from './rawKeys.ts';

/** A new ed25519 pair, as OpenSSL writes it (PKCS #8 and SPKI). */
export function newSigningKey(): { readonly privateKeyPem: string; readonly publicKeyPem: string; readonly keyid: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    privateKeyPem: String(privateKey.export({ format: 'pem', type: 'pkcs8' })),
    publicKeyPem: String(publicKey.export({ format: 'pem', type: 'spki' })),
    keyid: keyIdOf(publicKey),
  };
}

/** The key of a PEM text. Throws, without the text, when it is no private ed25519 key. */
export function readSigningKey(pem: string): { readonly privateKey: KeyObject; readonly keyid: string } {
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(pem);
  } catch {
    throw new Error('it is no private key in PEM form (without a password)');
  }
  if (privateKey.asymmetricKeyType !== 'ed25519') throw new Error(`it is a key of the kind ${privateKey.asymmetricKeyType}, not ed25519`);
  return { privateKey, keyid: keyIdOf(createPublicKey(privateKey)) };
}

/**
 * The envelope of a payload, in JSON. `detached`: the payload is left out, for a file that lies beside it; the signature is the same.
 * Throws when the PEM text is no private ed25519 key.
 */
export function signEnvelope(
  payload: Uint8Array,
  payloadType: string,
  privateKeyPem: string,
  o: { readonly detached?: boolean } = {},
): string {
  const { privateKey, keyid } = readSigningKey(privateKeyPem);
  const sig = sign(null, pae(payloadType, payload), privateKey).toString('base64');
  return JSON.stringify({
    payloadType,
    payload: o.detached === true ? '' : Buffer.from(payload).toString('base64'),
    signatures: [{ keyid, sig }],
  });
}
