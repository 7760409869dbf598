// pure
/** Whether a container's image is here: what images/ answers and kuberuntime/ acts on. */
import type { RunnableImage } from './runtime.ts';

export type EnsureResult =
  | {
      readonly ok: true;
      readonly image: RunnableImage;
      /** Policy Always and no answer from the registry: the image that is here is used; why it could not be refreshed. */
      readonly stale?: string;
    }
  /** Kubernetes' waiting reason and the text for people; milliseconds until trying again makes sense, when known. */
  | { readonly ok: false; readonly reason: string; readonly message: string; readonly waitMs?: number };

/** A container whose image may be older than its registry's, and why. */
export interface StaleImage {
  readonly container: string;
  readonly image: string;
  readonly why: string;
}
