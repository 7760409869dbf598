/** The same images, with another way of pulling. */
import type { ImageService } from '../container/runtime.ts';

export const withPull = (images: ImageService, pullImage: ImageService['pullImage']): ImageService => ({
  listImages: () => images.listImages(),
  imageStatus: (image) => images.imageStatus(image),
  removeImage: (image) => images.removeImage(image),
  imageFilesystems: () => images.imageFilesystems(),
  pullImage,
});
