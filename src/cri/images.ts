/**
 * Images over CRI, and containerd's own services behind it for what CRI has no words for. Owns nothing; the connection is runtime.ts's.
 */
import type { ContentStore, ImageFilesystem, ImageInfo, ImageService, Ingest, PullOptions } from '../container/runtime.ts';
import { isNotFound } from '../container/runtime.ts';
import type { CriClient } from './client.ts';
import * as convert from './convert.ts';
import { named } from './errors.ts';
import { Content } from './gen/containerd_content_pb.ts';
import { Images as ContainerdImages } from './gen/containerd_images_pb.ts';
import { ImageService as Images } from './gen/cri_pb.ts';

/** How long a call of each kind may take, in milliseconds. */
interface Timeouts {
  readonly list: number;
  readonly act: number;
  readonly pull: number;
}

export class CriImages implements ImageService, ContentStore {
  constructor(
    private readonly client: CriClient,
    private readonly timeouts: Timeouts,
  ) {}

  async listImages(): Promise<readonly ImageInfo[]> {
    const { images } = await this.client.call(Images.method.listImages, {}, this.timeouts.list);
    return images.map(convert.imageWord);
  }

  async imageStatus(image: string): Promise<ImageInfo | undefined> {
    const answer = await this.client.call(Images.method.imageStatus, { image: { image }, verbose: true }, this.timeouts.list);
    if (answer.image === undefined) return undefined;
    const platform = convert.imagePlatform(answer.info.info);
    return { ...convert.imageWord(answer.image), ...(platform && { platform }) };
  }

  async pullImage(image: string, { signal, auth }: PullOptions = {}): Promise<string> {
    const request = { image: { image }, ...(auth && { auth }) };
    const { imageRef } = await this.client.call(Images.method.pullImage, request, this.timeouts.pull, signal);
    return named(imageRef, 'PullImage');
  }

  async removeImage(image: string): Promise<void> {
    await this.client.call(Images.method.removeImage, { image: { image } }, this.timeouts.act).catch(ignoreNotFound);
  }

  async imageFilesystems(): Promise<readonly ImageFilesystem[]> {
    const { imageFilesystems } = await this.client.call(Images.method.imageFsInfo, {}, this.timeouts.list);
    return imageFilesystems.map((f) => ({
      mountpoint: f.fsId?.mountpoint ?? '',
      usedBytes: Number(f.usedBytes?.value ?? 0n),
      ...(f.inodesUsed && { inodesUsed: Number(f.inodesUsed.value) }),
    }));
  }

  async ingests(): Promise<readonly Ingest[]> {
    const { statuses } = await this.client.call(Content.method.listStatuses, {}, this.timeouts.list);
    return statuses.map((s) => ({ ref: s.ref, offsetBytes: Number(s.offset), totalBytes: Number(s.total) }));
  }

  async target(name: string): Promise<string | undefined> {
    try {
      const { image } = await this.client.call(ContainerdImages.method.get, { name }, this.timeouts.list);
      return image?.target?.digest;
    } catch (e) {
      if (isNotFound(e)) return undefined;
      throw e;
    }
  }

  async labelImage(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
    const paths = Object.keys(labels).map((key) => `labels.${key}`);
    // the mask leaves the target alone, but containerd 1.7 and later end with a crash where the message has none
    const update = { image: { name, labels: { ...labels }, target: {} }, updateMask: { paths } };
    await this.client.call(ContainerdImages.method.update, update, this.timeouts.act);
  }

  async dropImage(name: string): Promise<void> {
    await this.client.call(ContainerdImages.method.delete, { name, sync: true }, this.timeouts.act).catch(ignoreNotFound);
  }

  async dropContent(digest: string): Promise<void> {
    await this.client.call(Content.method.delete, { digest }, this.timeouts.act).catch(ignoreNotFound);
  }
}

const ignoreNotFound = (e: unknown): void => {
  if (!isNotFound(e)) throw e; // already gone is what was wanted
};
